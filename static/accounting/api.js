// Shows the API's description (OpenAPI) with Swagger UI; requests go with the visitor's session.
(() => {
  const place = document.getElementById("api");
  SwaggerUIBundle({
    url: place.dataset.schema,
    domNode: place,
    deepLinking: true,
    validatorUrl: null,
    defaultModelsExpandDepth: 0,
    presets: [SwaggerUIBundle.presets.apis],
  });
})();
